import { DoorwardError } from '../shared/errors.ts'
import { checkPrivacy } from './check-privacy.ts'
import type { Context } from './context.ts'

export type DoctorOptions = { readonly privacy?: boolean; readonly yes?: boolean }

/** Checks what it is told to check. Throws `usage` when that is nothing. */
export const doctor = async (
  context: Context,
  paths: string[],
  { privacy = false, yes = false }: DoctorOptions,
): Promise<void> => {
  if (!privacy)
    throw new DoorwardError('usage', 'doctor checks one thing so far', {
      hint: 'doorward doctor --privacy: what an event leaves on disk',
    })
  await checkPrivacy(context, paths, yes)
}
