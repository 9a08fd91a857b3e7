"""The nic contract: emulated or real network interface cards, under the BTLs that drive them."""
