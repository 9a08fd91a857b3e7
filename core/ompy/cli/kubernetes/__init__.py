"""`ompy k8s`: a job of ompy as objects of Kubernetes."""
