import { afterAll } from 'vitest';
import { removeFolders } from './datasets.js';

// In a file of its own, which runs anew for each test file: files in one process share what they import.
afterAll(removeFolders);
