package paths

import (
	"fmt"
	"testing"
)

func TestHidden(t *testing.T) {
	line := Graph{}
	for i := 0; i < 30; i++ {
		line[fmt.Sprint(i)] = []string{fmt.Sprint((i + 1) % 30), fmt.Sprint((i + 5) % 30)}
	}
	for i := 0; i < 30; i++ {
		if got := line.Distance("0", fmt.Sprint(i)); got != i/5+i%5 {
			t.Fatalf("%d: %d", i, got)
		}
	}
	if line.Reachable("7") != 30 || (Graph{}).Reachable("z") != 1 || (Graph{}).Distance("z", "y") != -1 {
		t.Fatal("reach")
	}
}
