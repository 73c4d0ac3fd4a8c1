// Package strictyaml reads and writes documents of YAML in which every mistake is found,
// with its line.
//
// Of YAML it takes what a configuration needs: one document, a mapping, with mappings,
// lists, strings, booleans and numbers in it. What a reader may misunderstand is a
// problem: a key twice, a key that is no string, a value that is missing, anchors,
// aliases, merges, tags and more documents. All problems of a document are reported in
// one go, but for one that keeps it from being parsed at all.
package strictyaml
