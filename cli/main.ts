#!/usr/bin/env node
import { join } from 'node:path'

/** Where Node keeps compiled code: a user who can write there could change the program as well. */
const compiledFolder = join(import.meta.dirname, '..', '.compiled')

/** Since Node 22.8. Without a folder of our own it is in the shared one for temporary files. */
type CompileCache = { readonly enableCompileCache?: (folder: string) => unknown }
;(process.getBuiltinModule('node:module') as CompileCache).enableCompileCache?.(compiledFolder)
// Loaded now, so that it comes out of that cache.
void import('./program.ts').then(async ({ runProgram }) => runProgram(process.argv.slice(2)))
