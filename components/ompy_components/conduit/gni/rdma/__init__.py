"""Put and get over the NIC, for conduits `gemini` and `aries`."""
