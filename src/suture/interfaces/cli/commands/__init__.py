"""The commands, a file each: arguments in, a call of the api, words out."""
