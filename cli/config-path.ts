import type { Context } from './context.ts'

/** Prints the folder of the configuration files. */
export const printConfigPath = ({ home, terminal }: Context): void => {
  if (terminal.json) terminal.printJson({ path: home.config })
  else terminal.print(home.config)
}
