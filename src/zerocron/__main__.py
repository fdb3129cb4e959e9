"""`python -m zerocron` is the command line."""

from zerocron.cli import main

if __name__ == "__main__":
    main()
