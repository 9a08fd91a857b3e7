"""nic/gni: an emulated Gemini or Aries NIC."""
