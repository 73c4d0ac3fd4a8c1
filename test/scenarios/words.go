package scenarios

import (
	"strconv"
	"strings"
	"unicode"
)

// cut splits off the first word. Spaces inside brackets, braces, parentheses
// and quotes belong to the word.
func cut(line string) (word, rest string) {
	line = strings.TrimSpace(line)
	depth, quote := 0, rune(0)
	for i, r := range line {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case depth > 0 && (r == '"' || r == '\''):
			quote = r
		case strings.ContainsRune("[{(", r):
			depth++
		case strings.ContainsRune("]})", r):
			depth--
		case unicode.IsSpace(r) && depth <= 0:
			return line[:i], strings.TrimSpace(line[i:])
		}
	}
	return line, ""
}

// unquote removes one pair of quotes around a value.
func unquote(value string) string {
	if len(value) < 2 || value[0] != value[len(value)-1] {
		return value
	}
	switch value[0] {
	case '\'':
		return value[1 : len(value)-1]
	case '"':
		if plain, err := strconv.Unquote(value); err == nil {
			return plain
		}
	}
	return value
}
