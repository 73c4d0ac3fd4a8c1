package resourceclaim

import "strings"

// longestBase is what the API server leaves of a name to add its five characters to, less
// one for the hyphen in the middle.
const longestBase = 57

// generateName returns how the names of the claims begin that are made for a claim of an
// owner. Of two long names each loses in proportion to its length.
func generateName(owner, claim string) string {
	base := owner + "-" + claim + "-"
	if len(base) <= longestBase {
		return base
	}
	whole := len(base)
	owner, claim = owner[:max(1, len(owner)*longestBase/whole)], claim[:len(claim)*longestBase/whole]
	// No name and no label of one begins with the hyphen that follows.
	return strings.TrimRight(owner, ".") + "-" + claim
}
