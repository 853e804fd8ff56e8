//! BGP: FRRConfigurations that select the node become FRR's configuration; how its sessions fare is told in objects.
