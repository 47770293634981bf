package main

import (
	"log/slog"
	"os"
	"os/signal"

	"github.com/microtome/microtome"
)

// resetAtSignal has devices that are off, since their workers died too often, asked
// on again whenever the operator sends resetSignals, until stop is called. It takes
// the signal without devices too: nobody means to end a server by it.
func resetAtSignal(log *slog.Logger, devices []microtome.Device) (stop func()) {
	if len(resetSignals) == 0 {
		return func() {}
	}
	asked, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(asked, resetSignals...)
	go func() {
		defer close(over)
		for range asked {
			resetDevices(log, devices)
		}
	}()
	return func() {
		signal.Stop(asked)
		close(asked)
		<-over
	}
}

func resetDevices(log *slog.Logger, devices []microtome.Device) {
	if len(devices) == 0 {
		log.Info("asked to reset devices: there are none")
	}
	for _, d := range devices {
		before := d.Stats().State
		if err := d.Reset(); err != nil {
			log.Error("device not reset", "device", d.Name(), "error", err)
			continue
		}
		log.Info("device reset", "device", d.Name(), "before", before)
	}
}
