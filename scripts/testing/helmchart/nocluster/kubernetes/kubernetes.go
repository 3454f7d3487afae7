// Package kubernetes is empty: helm imports it for the number of its version.
package kubernetes
