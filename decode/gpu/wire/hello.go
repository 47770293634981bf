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
	// MinSide and MaxSide bound the streams that it decodes, in pixels a side, 0 where
	// it has no bound of its own. Samplings are those that it decodes, as bits; Tried
	// those of them that may crash it, so that a child has to try them first.
	MinSide, MaxSide int
	Samplings, Tried uint32
	Batch            int // tiles a call that suit it, 0: any number
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
