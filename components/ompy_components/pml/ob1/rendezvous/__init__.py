"""Large messages: rendezvous, fragments after it, put and get, and how rails share them."""
