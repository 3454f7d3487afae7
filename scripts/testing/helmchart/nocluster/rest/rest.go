// Package rest has the type that helm's signatures name.
package rest

type Config struct{}
