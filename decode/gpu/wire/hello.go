package wire

// What a worker says of a vendor's libraries and devices before any message: lines
// of JSON on its standard output.

// Info describes a device.
type Info struct {
	Vendor, Name, Arch, PCI string   // arch such as sm_90
	Driver, Decoder         string   // versions
	Libraries               []string // files
	Memory, Free            int64    // bytes
	// Engines are units that decode JPEG, 0 when the device has none.
	Engines, Multiprocessors int
	// Kernels is what the engine's own kernels were compiled for, and Fit whether
	// the device runs them.
	Kernels string
	Fit     bool
}

// Library is one that a vendor's engine needs.
type Library struct {
	Role    string   // driver, decoder
	Looked  []string // what the loader was asked for, in this order
	File    string   // what it opened, "": nothing
	Version string   // "": unknown
	Why     string   // what is wrong with it, "": nothing
	Absent  bool     // no file of these names is there
}

// Failure is what the engine or a vendor's library said of a step.
type Failure struct {
	Kind int    // Missing, …; 0: none of them
	Code int    // the vendor's own, 0: none
	Text string // what failed
}

func (f *Failure) Error() string { return f.Text }
