"""pml/direct: messages without fragments, BTLs or a wire, in worlds that are explored."""
