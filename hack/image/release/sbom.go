package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/licenseclassifier/v2/assets"

	"github.com/kube-kcm/kube-controller-manager/hack/image/files"
)

// own is the licence of this project.
const own = "Apache-2.0"

// sbom names the executables of a platform and all modules that each is built from, with
// their licences. It has no serial number, so that it is the same for the same executables.
func sbom(o options, p platform, found []executable) ([]byte, error) {
	root := cdx.Component{
		BOMRef: "release", Type: cdx.ComponentTypeApplication, Name: program, Version: o.version, Licenses: licensed(own),
		Properties: &[]cdx.Property{{Name: "kubernetes:version", Value: o.apiLevel}, {Name: "platform", Value: p.name}},
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: o.created.UTC().Format(time.RFC3339), Component: &root}
	var parts []string
	modules := map[string]cdx.Component{}
	components, uses := []cdx.Component{}, []cdx.Dependency{}
	for _, e := range found {
		ref := "executable:" + e.name
		parts = append(parts, ref)
		needs, err := needed(o, e, modules)
		if err != nil {
			return nil, err
		}
		uses = append(uses, cdx.Dependency{Ref: ref, Dependencies: &needs})
		components = append(components, cdx.Component{
			BOMRef: ref, Type: cdx.ComponentTypeApplication, Name: e.name, Version: o.version,
			Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(e.content))}},
		})
	}
	for _, m := range modules {
		components = append(components, m)
	}
	slices.SortStableFunc(components[len(found):], func(a, b cdx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	uses = append([]cdx.Dependency{{Ref: root.BOMRef, Dependencies: &parts}}, uses...)
	bom.Components, bom.Dependencies = &components, &uses

	var out bytes.Buffer
	encoder := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false)
	if err := encoder.EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("write the bill of materials for %s: %w", p.name, err)
	}
	return out.Bytes(), nil
}

// needed returns the references of what an executable is built from, and adds what is not
// known yet to the modules.
func needed(o options, e executable, modules map[string]cdx.Component) ([]string, error) {
	info, err := buildinfo.ReadFile(e.path)
	if err != nil {
		return nil, err
	}
	all, err := files.Modules(e.path)
	if err != nil {
		return nil, err
	}
	var refs []string
	add := func(c cdx.Component) {
		c.BOMRef, c.Type = c.PackageURL, cdx.ComponentTypeLibrary
		if _, known := modules[c.BOMRef]; !known {
			modules[c.BOMRef] = c
		}
		refs = append(refs, c.BOMRef)
	}
	add(cdx.Component{
		Name: "std", Version: info.GoVersion, PackageURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"), Licenses: licensed("BSD-3-Clause"),
	})
	for _, m := range all {
		licences, err := identify(m.Licenses)
		if err != nil {
			return nil, err
		}
		c := cdx.Component{Name: m.Path, Version: m.Version, Licenses: licensed(licences...)}
		switch {
		case m.Ours() && strings.HasSuffix(m.Path, "/staging/controllerkit"):
			c.Version, c.Licenses = o.kit, licensed(own)
		case m.Ours():
			c.Version, c.Licenses = o.version, licensed(own)
		default:
			c.Properties = &[]cdx.Property{{Name: "go:sum", Value: m.Sum}}
		}
		c.PackageURL = "pkg:golang/" + c.Name + "@" + strings.ReplaceAll(c.Version, "+", "%2B") + "?type=module"
		add(c)
	}
	slices.Sort(refs)
	return refs, nil
}

// classifier knows the texts of licences.
var classifier = sync.OnceValues(assets.DefaultClassifier)

// identify returns the SPDX names of the licences in the files of a module; none if no file
// has a text that is known.
func identify(of []files.File) ([]string, error) {
	known, err := classifier()
	if err != nil {
		return nil, fmt.Errorf("load the texts of licences: %w", err)
	}
	var ids []string
	for _, f := range of {
		for _, match := range known.Match(f.Content).Matches {
			if match.MatchType == "License" {
				ids = append(ids, match.Name)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

func licensed(ids ...string) *cdx.Licenses {
	if len(ids) == 0 {
		return nil
	}
	all := cdx.Licenses{}
	for _, id := range ids {
		all = append(all, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	return &all
}
