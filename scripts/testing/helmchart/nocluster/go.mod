// Stands for the client of a cluster, which rendering a chart does not need. Building the real one takes two minutes.
module k8s.io/client-go

go 1.26.0

require k8s.io/apimachinery v0.37.1
