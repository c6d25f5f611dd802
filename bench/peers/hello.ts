import { Command } from 'commander'

/* The least that a command line with commander can do, loaded as npm installs it. */
new Command('hello').version('0.1.0', '--version').parse()
