// Command mkschema writes the strict JSON Schemas in ../schemas, which
// kubeconform reads, so that a check needs no network: those of Kubernetes from
// the OpenAPI document in its module, those of the Prometheus operator from the
// CRDs in its module. Run it from testdata/deploy when a kind or a version changes:
//
//	go run ./mkschema
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Where the schemas come from. The chart uses no field younger than its
// kubeVersion; hack/kube-e2e applies it to a server of this version.
const (
	kubernetes = "k8s.io/kubernetes@v1.37.2"
	operator   = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
	objectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
)

// kinds are what the chart renders, by the name kubeconform asks for.
var kinds = map[string]string{
	"configmap-v1":                  "io.k8s.api.core.v1.ConfigMap",
	"cronjob-batch-v1":              "io.k8s.api.batch.v1.CronJob",
	"deployment-apps-v1":            "io.k8s.api.apps.v1.Deployment",
	"job-batch-v1":                  "io.k8s.api.batch.v1.Job",
	"networkpolicy-networking-v1":   "io.k8s.api.networking.v1.NetworkPolicy",
	"poddisruptionbudget-policy-v1": "io.k8s.api.policy.v1.PodDisruptionBudget",
	"service-v1":                    "io.k8s.api.core.v1.Service",
	"serviceaccount-v1":             "io.k8s.api.core.v1.ServiceAccount",
	"statefulset-apps-v1":           "io.k8s.api.apps.v1.StatefulSet",
	"podmonitor-monitoring-v1":      "crd podmonitors",
	"servicemonitor-monitoring-v1":  "crd servicemonitors",
}

type object = map[string]any

func main() {
	if err := run("schemas"); err != nil {
		fmt.Fprintln(os.Stderr, "mkschema:", err)
		os.Exit(1)
	}
}

func run(out string) error {
	swagger, err := moduleFile(kubernetes, "api/openapi-spec/swagger.json")
	if err != nil {
		return err
	}
	var doc struct{ Definitions map[string]object }
	if err := json.Unmarshal(swagger, &doc); err != nil {
		return fmt.Errorf("swagger.json: %w", err)
	}
	for name, from := range kinds {
		root, err := root(from, doc.Definitions)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := write(filepath.Join(out, name+".json"), standalone(root, doc.Definitions)); err != nil {
			return err
		}
	}
	return nil
}

// root is the schema of one kind, as published.
func root(from string, definitions map[string]object) (object, error) {
	plural, ok := strings.CutPrefix(from, "crd ")
	if !ok {
		if definitions[from] == nil {
			return nil, fmt.Errorf("%s has no definition %s", kubernetes, from)
		}
		return definitions[from], nil
	}
	text, err := moduleFile(operator, "example/prometheus-operator-crd/monitoring.coreos.com_"+plural+".yaml")
	if err != nil {
		return nil, err
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema object `yaml:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil || len(crd.Spec.Versions) != 1 {
		return nil, fmt.Errorf("crd of %s: %d versions, want 1 (%v)", plural, len(crd.Spec.Versions), err)
	}
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	// A CRD leaves metadata to the server.
	schema["properties"].(object)["metadata"] = object{"$ref": "#/definitions/" + objectMeta}
	return schema, nil
}

// standalone is a strict schema with the definitions it needs and no others.
func standalone(root object, definitions map[string]object) object {
	needed := object{}
	out := strict(root, definitions, needed).(object)
	if len(needed) > 0 {
		out["definitions"] = needed
	}
	return out
}

// strict drops what only people read, refuses unknown fields, and collects in
// needed what a schema refers to.
func strict(node any, definitions map[string]object, needed object) any {
	switch node := node.(type) {
	case []any:
		out := make([]any, len(node))
		for i, v := range node {
			out[i] = strict(v, definitions, needed)
		}
		return out
	case object:
		return strictObject(node, definitions, needed)
	default:
		return node
	}
}

func strictObject(node object, definitions map[string]object, needed object) any {
	if ref, ok := node["$ref"].(string); ok {
		return strictRef(ref, definitions, needed)
	}
	if node["x-kubernetes-int-or-string"] == true {
		return object{"type": []any{"string", "integer"}}
	}
	out := object{}
	for key, value := range node {
		if strings.HasPrefix(key, "x-") || key == "default" || key == "description" && isText(value) {
			continue
		}
		if key == "properties" { // its keys are names of fields, not keywords
			fields := object{}
			for field, schema := range value.(object) {
				fields[field] = strict(schema, definitions, needed)
			}
			out[key] = fields
			continue
		}
		out[key] = strict(value, definitions, needed)
	}
	if out["properties"] != nil && out["additionalProperties"] == nil {
		out["additionalProperties"] = false
	}
	return out
}

func isText(v any) bool { _, ok := v.(string); return ok }

func strictRef(ref string, definitions map[string]object, needed object) any {
	name := ref[strings.LastIndexByte(ref, '/')+1:]
	switch {
	case strings.HasSuffix(name, ".Quantity"):
		return object{"type": []any{"string", "number"}}
	case strings.HasSuffix(name, ".IntOrString"):
		return object{"type": []any{"string", "integer"}}
	}
	if _, seen := needed[name]; !seen {
		needed[name] = nil // before its own references, which may lead back here
		needed[name] = strict(definitions[name], definitions, needed)
	}
	return object{"$ref": "#/definitions/" + name}
}

// write puts one definition on a line: small, and a diff shows which one changed.
func write(path string, schema object) error {
	definitions, _ := schema["definitions"].(object)
	delete(schema, "definitions")
	head, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.Write(bytes.TrimSuffix(head, []byte("}")))
	if len(definitions) > 0 {
		b.WriteString(",\n\"definitions\":{")
		sep := "\n"
		for _, name := range slices.Sorted(maps.Keys(definitions)) {
			text, err := json.Marshal(definitions[name])
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s%q:%s", sep, name, text)
			sep = ",\n"
		}
		b.WriteString("\n}")
	}
	b.WriteString("}\n")
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// moduleFile reads a file of a published module.
func moduleFile(module, path string) ([]byte, error) {
	out, err := exec.Command("go", "mod", "download", "-json", module).Output()
	if err != nil {
		return nil, fmt.Errorf("go mod download %s: %w", module, err)
	}
	var m struct{ Dir string }
	if err := json.Unmarshal(out, &m); err != nil {
		return nil, fmt.Errorf("go mod download %s: %w", module, err)
	}
	return os.ReadFile(filepath.Join(m.Dir, path))
}
