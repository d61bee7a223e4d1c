// Package words is a small package with bugs to be seeded.
package words

import (
	"sort"
	"strings"
	"unicode"
)

// Count counts words without regard to case.
func Count(text string) map[string]int {
	counts := map[string]int{}
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
		counts[word]++
	}
	return counts
}

// Top gives the most frequent words, at most n, those of one count in the order of the alphabet.
func Top(text string, n int) []string {
	counts := Count(text)
	words := make([]string, 0, len(counts))
	for word := range counts {
		words = append(words, word)
	}
	sort.Slice(words, func(i, j int) bool {
		if counts[words[i]] != counts[words[j]] {
			return counts[words[i]] > counts[words[j]]
		}
		return words[i] < words[j]
	})
	if len(words) > n {
		words = words[:n]
	}
	return words
}

// Title makes the first letter of each word a capital.
func Title(text string) string {
	words := strings.Fields(text)
	for i, word := range words {
		letters := []rune(word)
		letters[0] = unicode.ToUpper(letters[0])
		words[i] = string(letters)
	}
	return strings.Join(words, " ")
}
