package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"ordeal/controller/report"
	"ordeal/controller/result"
)

// output is one file to write.
type output struct {
	path, what string
	render     func(io.Writer, *result.Document) error
}

type outputs []output

func (o *outputs) add(path, what string, render func(io.Writer, *result.Document) error) {
	if path != "" {
		*o = append(*o, output{path, what, render})
	}
}

// addFixGuide renders against the guide that is there, for what changed.
func (o *outputs) addFixGuide(path string) {
	o.add(path, "fix guide", func(w io.Writer, doc *result.Document) error {
		previous, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return report.AgentsMD(w, doc, previous, time.Now())
	})
}

func (o *outputs) addRefusal(path string, r *result.Refusal) {
	o.add(path, "refusal", func(w io.Writer, _ *result.Document) error { return report.RefusalJSON(w, r) })
}

// check finds out before the scan whether each file could be written, without
// leaving anything behind.
func (o outputs) check() error {
	var problems []error
	for i, out := range o {
		for _, other := range o[:i] {
			if other.path == out.path && !device(out.path) {
				problems = append(problems, fmt.Errorf("%s and %s would both be written to %s: name two files", other.what, out.what, out.path))
			}
		}
		if err := writable(out.path); err != nil {
			problems = append(problems, fmt.Errorf("cannot write the %s to %s: %w", out.what, out.path, err))
		}
	}
	return errors.Join(problems...)
}

// device reports a path at which nothing is replaced.
func device(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular()
}

// writable is nil when write could put a file there. A device is opened, since
// nothing is put beside it; a pipe is left alone, since opening it waits for its
// reader.
func writable(path string) error {
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return errors.New("it is a directory")
	case err == nil && info.Mode()&os.ModeDevice != 0:
		device, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return device.Close()
	case err == nil && !info.Mode().IsRegular():
		return nil
	}
	probe, err := os.CreateTemp(filepath.Dir(path), ".ordeal-*")
	if err != nil {
		return err
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// write renders each file beside its place and moves it there whole, so that a
// full disk leaves the old file as it was.
func (o outputs) write(doc *result.Document) (written []string, err error) {
	var problems []error
	for _, out := range o {
		if err := out.write(doc); err != nil {
			problems = append(problems, fmt.Errorf("write the %s to %s: %w; the scan's result was not saved there", out.what, out.path, err))
			continue
		}
		written = append(written, fmt.Sprintf("%s written to %s", out.what, out.path))
	}
	return written, errors.Join(problems...)
}

func (out output) write(doc *result.Document) error {
	var buf bytes.Buffer
	if err := out.render(&buf, doc); err != nil {
		return err
	}
	if info, err := os.Stat(out.path); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(out.path, buf.Bytes(), 0o644) // a device or a pipe cannot be replaced
	}
	tmp, err := os.CreateTemp(filepath.Dir(out.path), ".ordeal-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(buf.Bytes())
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), out.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}
