package options

import (
	"strings"
	"testing"
)

func TestTheAllocatorOfPodCIDRs(t *testing.T) {
	const allocates = "--allocate-node-cidrs --cluster-cidr=10.244.0.0/16 "
	const none, cloud = "--cidr-allocator-type=: invalid CIDR allocator type: ", "built-in cloud providers are disabled. The ipam CloudAllocator is not available"
	t.Chdir(sampleFiles(t))
	// An empty message means that the command line is accepted.
	for name, tc := range map[string]struct{ line, message string }{
		"none, and nothing is allocated":    {"--cidr-allocator-type=", ""},
		"none, and CIDRs are allocated":     {allocates + "--cidr-allocator-type=", none},
		"none, and nobody would allocate":   {allocates + "--cidr-allocator-type= --controllers=*,-node-ipam-controller", ""},
		"none, and the alias is switched":   {allocates + "--cidr-allocator-type= --controllers=*,-nodeipam", ""},
		"the one that is built in":          {allocates + "--cidr-allocator-type=RangeAllocator", ""},
		"one of a cloud":                    {allocates + "--cidr-allocator-type=CloudAllocator", cloud},
		"also where nothing is allocated":   {"--cidr-allocator-type=CloudAllocator", cloud},
		"and where nobody would allocate":   {"--cidr-allocator-type=CloudAllocator --controllers=*,-nodeipam", cloud},
		"in other letters it is another":    {"--cidr-allocator-type=rangeallocator", "The ipam rangeallocator is not available"},
		"a space is a name that is unknown": {"--cidr-allocator-type=\u00a0", "The ipam \u00a0 is not available"},
	} {
		t.Run(name, func(t *testing.T) {
			expectMessage(t, strings.Split(tc.line, " "), tc.message)
		})
	}
}
