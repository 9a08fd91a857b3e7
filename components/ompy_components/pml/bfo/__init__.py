"""pml/bfo: ob1 that goes on over another rail when one dies."""
