package scenarios

import "strings"

// Groups puts stories with the same setup together, in their order, so that
// they share a manager. A slow story and a private one are groups of their own;
// the slow ones come first. Before all are the stories with an apiserver line:
// those with the same one are one group, as they share a control plane.
func Groups(stories []*Story) [][]*Story {
	ordinary, groups := byAPIServer(stories)
	for i, special := range groups {
		groups[i] = nil
		for _, group := range bySetup(special) {
			groups[i] = append(groups[i], group...)
		}
	}
	return append(groups, bySetup(ordinary)...)
}

// byAPIServer takes the stories apart that want another API server than most.
func byAPIServer(stories []*Story) (ordinary []*Story, special [][]*Story) {
	places := map[string]int{}
	for _, story := range stories {
		key := strings.Join(story.APIServer, " ")
		place, known := places[key]
		switch {
		case key == "":
			ordinary = append(ordinary, story)
		case known:
			special[place] = append(special[place], story)
		default:
			places[key] = len(special)
			special = append(special, []*Story{story})
		}
	}
	return ordinary, special
}

func bySetup(stories []*Story) [][]*Story {
	shared := map[string]int{}
	var slow, quick [][]*Story
	for _, story := range stories {
		key := story.Setup.key()
		place, known := shared[key]
		switch {
		case story.Slow:
			slow = append(slow, []*Story{story})
		case story.Private:
			quick = append(quick, []*Story{story})
		case known:
			quick[place] = append(quick[place], story)
		default:
			shared[key] = len(quick)
			quick = append(quick, []*Story{story})
		}
	}
	return append(slow, quick...)
}
