// Package stack is a small package with bugs to be seeded.
package stack

// Stack holds numbers, the last one on top.
type Stack struct{ items []int }

// Push puts a number on top.
func (s *Stack) Push(item int) {
	s.items = append(s.items, item)
}

// Pop takes the top away; false where there is none.
func (s *Stack) Pop() (int, bool) {
	if len(s.items) == 0 {
		return 0, false
	}
	top := s.items[len(s.items)-1]
	s.items = s.items[:len(s.items)-1]
	return top, true
}

// Eval works out a term in Polish notation with the operator behind, such as "34+2*".
func Eval(term string) (int, bool) {
	var s Stack
	for _, sign := range term {
		if sign >= '0' && sign <= '9' {
			s.Push(int(sign - '0'))
			continue
		}
		right, ok := s.Pop()
		if !ok {
			return 0, false
		}
		left, ok := s.Pop()
		if !ok {
			return 0, false
		}
		switch sign {
		case '+':
			s.Push(left + right)
		case '-':
			s.Push(left - right)
		case '*':
			s.Push(left * right)
		default:
			return 0, false
		}
	}
	answer, ok := s.Pop()
	return answer, ok && len(s.items) == 0
}
