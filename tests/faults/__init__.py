"""Faults that are really caused, each in a process of its own: kills, signals, full disks, damaged files, clocks."""
