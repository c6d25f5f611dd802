import { z } from 'zod'

/** `GET /workspaces`: the mirrors of repositories, the one that was used last first. */
export const workspacesSchema = z.strictObject({
  workspaces: z.array(
    z.strictObject({
      name: z.string(),
      /** The address or path that it was fetched from. */
      repository: z.string(),
      bytes: z.int(),
      /** How many runs use it now. */
      running: z.int(),
      lastUsedAt: z.iso.datetime().nullable(),
    }),
  ),
})
export type WorkspaceSummary = z.infer<typeof workspacesSchema>['workspaces'][number]

/** Response of `DELETE /workspaces`. */
export const clearedWorkspacesSchema = z.strictObject({
  removed: z.int(),
  bytes: z.int(),
  inUse: z.int(),
})
export type ClearedWorkspaces = z.infer<typeof clearedWorkspacesSchema>
