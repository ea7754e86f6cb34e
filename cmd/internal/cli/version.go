package cli

// Version of this build; result documents carry it as the instrument's.
const Version = "0.1.0"
