"""The kit for nic components: devices, their datagrams, and a BTL over them."""
