// Package ferry crosses the bay.
package ferry
