/** Our own arguments, and those after the first `--`, which may be another program's; undefined without one. */
export const splitAtDashes = (
  args: readonly string[],
): { readonly own: readonly string[]; readonly rest: readonly string[] | undefined } => {
  const at = args.indexOf('--')
  return at === -1
    ? { own: args, rest: undefined }
    : { own: args.slice(0, at), rest: args.slice(at + 1) }
}
