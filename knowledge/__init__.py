"""What npufuse knows, one file an operator. See docs/adding-an-operator.md."""
