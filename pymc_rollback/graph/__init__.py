"""PyTensor graphs: what they are made of, what they are worth, how a person would write them."""
