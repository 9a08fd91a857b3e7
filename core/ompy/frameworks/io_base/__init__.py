"""What io components are built of: views, and access through them."""
