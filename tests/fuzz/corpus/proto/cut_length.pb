b
abc