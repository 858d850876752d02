"""The commands, one file each. A command says what to call and prints what comes back; it decides nothing."""
