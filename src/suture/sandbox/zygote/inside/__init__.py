"""What runs behind the wall in a zygote. On a bare interpreter: it may import the standard library only."""
