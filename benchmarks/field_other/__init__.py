"""The field set of other languages: packages in JavaScript, TypeScript and Go that nobody here wrote.

Only names, versions, hashes and descriptions of bugs are stored here. Code is downloaded, and bugs are made again.
"""
