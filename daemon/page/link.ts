import { z } from 'zod'

/** Body of `POST /ui/link`: the view that the link opens. Only a path of the page, never another address. */
export const linkSchema = z.strictObject({
  to: z
    .string()
    .max(500)
    .regex(/^\/(ui\/[\w/.:-]*(\?[\w=&%.:+-]*)?)?$/, 'not a path of the page')
    .default('/'),
})
