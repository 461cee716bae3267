"""What a person sees: tables and progress when one watches, plain lines when nobody does."""
