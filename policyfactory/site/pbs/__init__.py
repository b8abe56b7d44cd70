"""OpenPBS and PBS Professional: what qmgr and pbsnodes print, read as a site."""
