"""Memory Fabric: questions parsed, entities found in texts, results recalled and ranked."""
