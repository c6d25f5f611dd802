/** The files and folders that the sandbox of one run shows. */
export type Room = {
  /** The program that makes it. */
  readonly sandbox: string
  readonly argv: readonly string[]
  readonly cwd: string
  readonly network: boolean
  /** Variables that name folders which are not there. */
  readonly unset: readonly string[]
  readonly userHome: string
  readonly doorwardHome: string
  /** Empty folders that it may write to. */
  readonly empty: readonly string[]
  /** Links by where they lead. */
  readonly links: ReadonlyMap<string, string>
  readonly read: readonly string[]
  /** Real paths by the path inside. */
  readonly write: ReadonlyMap<string, string>
}
