package servicecidrs

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func address(name, manager, family string) *networkingv1.IPAddress {
	return &networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		networkingv1.LabelManagedBy: manager, networkingv1.LabelIPAddressFamily: family,
	}}}
}

func TestAddressOf(t *testing.T) {
	for name, tc := range map[string]struct {
		ip   *networkingv1.IPAddress
		want string
	}{
		"one that the API server handed out":  {address("10.0.0.1", managedBy, "IPv4"), "10.0.0.1"},
		"one of the other family":             {address("fd00::1", managedBy, "IPv6"), "fd00::1"},
		"one that somebody else manages":      {address("10.0.0.1", "me", "IPv4"), ""},
		"one without a manager":               {&networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: "10.0.0.1"}}, ""},
		"one whose label says another family": {address("10.0.0.1", managedBy, "IPv6"), ""},
		"one whose label says no family":      {address("10.0.0.1", managedBy, ""), ""},
		"one whose name cannot be an address": {address("ten", managedBy, "IPv4"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := addressOf(tc.ip)
			if ok != (tc.want != "") || ok && got.String() != tc.want {
				t.Errorf("got %v, %v", got, ok)
			}
		})
	}
}

func TestRangesThatCannotBeReadAreLeftOut(t *testing.T) {
	got := rangesOf(cidr("a", of("10.0.0.0/24", "nonsense", "fd00::/112")))
	if want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("fd00::/112")}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestBlocks(t *testing.T) {
	for prefix, want := range map[string]struct {
		count       int
		first, last string
	}{
		"10.0.0.0/8":     {1, "10.0.0.0/8", "10.0.0.0/8"},
		"10.96.0.0/12":   {16, "10.96.0.0/16", "10.111.0.0/16"},
		"10.0.0.0/23":    {2, "10.0.0.0/24", "10.0.1.0/24"},
		"10.0.0.64/28":   {1, "10.0.0.0/24", "10.0.0.0/24"},
		"0.0.0.0/0":      {256, "0.0.0.0/8", "255.0.0.0/8"},
		"fd00::/112":     {1, "fd00::/112", "fd00::/112"},
		"fd00::/108":     {16, "fd00::/112", "fd00::f:0/112"},
		"fd00::1234/127": {1, "fd00::1200/120", "fd00::1200/120"},
		"fd00::/20":      {1, "::/0", "::/0"},
		"::/0":           {1, "::/0", "::/0"},
	} {
		got := blocks(netip.MustParsePrefix(prefix))
		if len(got) != want.count || got[0] != want.first || got[len(got)-1] != want.last {
			t.Errorf("%s: got %v", prefix, got)
		}
	}
}

// An address in a range is found under exactly one of the range's blocks.
func TestEveryAddressIsFoundOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		bytes := make([]byte, []int{4, 16}[random.IntN(2)])
		for i := range bytes {
			bytes[i] = byte(random.IntN(256))
		}
		addr, _ := netip.AddrFromSlice(bytes)
		prefix := netip.PrefixFrom(addr, random.IntN(addr.BitLen()+1)).Masked()
		family := map[bool]string{true: "IPv4", false: "IPv6"}[addr.Is4()]
		values, err := indexValues(address(addr.String(), managedBy, family))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, value := range blocks(prefix) {
			if slices.Contains(values, value) {
				found++
			}
		}
		if found != 1 {
			t.Fatalf("%s is found %d times in %s", addr, found, prefix)
		}
	}
}
