"""How fast the mirror is read and written, against what the same machine does at best."""
