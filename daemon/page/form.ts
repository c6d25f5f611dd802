import type { Context } from 'koa'
import { DoorwardError } from '../../shared/errors.ts'

const maxFormBytes = 64 * 1024

/** The fields of a form; none of them is longer than a remark. Throws `body-too-large`. */
export const readForm = async (ctx: Context): Promise<URLSearchParams> => {
  let text = ''
  for await (const chunk of ctx.req) {
    text += String(chunk)
    if (text.length > maxFormBytes)
      throw new DoorwardError('body-too-large', `the form is larger than ${maxFormBytes} bytes`)
  }
  return new URLSearchParams(text)
}
