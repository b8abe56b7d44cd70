"""What every stage needs: errors, random streams, units, JIT options, artefacts."""
