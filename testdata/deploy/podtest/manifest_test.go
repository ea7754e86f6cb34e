package podtest

import (
	"errors"
	"io"
	"os"
	"testing"

	"gopkg.in/yaml.v3"
)

// manifest is what these tests read of an object.
type manifest struct {
	Kind string
	Data map[string]string
	Spec struct {
		Replicas int
		Template struct{ Spec pod }
	}
}

type pod struct {
	Grace      int `yaml:"terminationGracePeriodSeconds"`
	Containers []container
}

type container struct {
	Name           string
	Command        []string
	Args           []string
	Env            []struct{ Name, Value string }
	ReadinessProbe struct {
		HTTPGet struct{ Path string } `yaml:"httpGet"`
	} `yaml:"readinessProbe"`
	LivenessProbe struct {
		HTTPGet struct{ Path string } `yaml:"httpGet"`
	} `yaml:"livenessProbe"`
}

func manifests(t *testing.T) []manifest {
	t.Helper()
	f, err := os.Open(os.Getenv("MANIFESTS"))
	if err != nil {
		t.Fatalf("MANIFESTS must name a file of rendered manifests: %v", err)
	}
	defer f.Close()
	var out []manifest
	for d := yaml.NewDecoder(f); ; {
		var m manifest
		switch err := d.Decode(&m); {
		case errors.Is(err, io.EOF):
			return out
		case err != nil:
			t.Fatal(err)
		}
		out = append(out, m)
	}
}

// file is the text of a ConfigMap's file.
func file(t *testing.T, name string) string {
	t.Helper()
	for _, m := range manifests(t) {
		if m.Kind == "ConfigMap" && m.Data[name] != "" {
			return m.Data[name]
		}
	}
	t.Fatalf("no ConfigMap with %s in the manifests", name)
	return ""
}

// workload is the first object of a kind, and its first container.
func workload(t *testing.T, kind string) (manifest, container) {
	t.Helper()
	for _, m := range manifests(t) {
		if m.Kind == kind && len(m.Spec.Template.Spec.Containers) > 0 {
			return m, m.Spec.Template.Spec.Containers[0]
		}
	}
	t.Fatalf("no %s with a container in the manifests", kind)
	return manifest{}, container{}
}
